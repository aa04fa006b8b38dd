# Interface packages on a machine with wheels alone, in half of the time.
#
#   include(for_wheels.cmake)            after find_package(rosidl_default_generators)
#   rosidl_generate_interfaces(...)
#   generate_for_wheels()

# There is no rclcpp that could use the C++ type supports.
list(FILTER AMENT_EXTENSIONS_rosidl_generate_idl_interfaces EXCLUDE REGEX "_cpp:")
set(_generate ${CMAKE_CURRENT_LIST_DIR}/generate.py)

macro(generate_for_wheels)
  set(_generators "")
  foreach(generator generator_type_description generator_py generator_c typesupport_fastrtps_c
      typesupport_introspection_c typesupport_c)
    set(_command "${rosidl_${generator}_BIN}")
    if(generator STREQUAL typesupport_c)
      get_used_typesupports(_supports rosidl_typesupport_c)
      string(REPLACE ";" "|" _supports "${_supports}")
      string(APPEND _command "|--typesupports|${_supports}")
    elseif(generator STREQUAL generator_py)
      rosidl_generator_py_get_typesupports(_supports)
      string(REPLACE ";" "\\;" _supports "${_supports}")
      string(APPEND _command "|--typesupport-impls|${_supports}")
    endif()
    list(APPEND _generators "${CMAKE_CURRENT_BINARY_DIR}/rosidl_${generator}__arguments.json" "${_command}")
  endforeach()
  execute_process(COMMAND ${Python3_EXECUTABLE} ${_generate} ${_generators} RESULT_VARIABLE _failed)
  if(_failed)
    message(STATUS "the generators are left to make")
  endif()
  # Sources all include the same large headers: some together compile in a third of the time. Those
  # of the descriptions each have statics of the same names.
  file(GLOB_RECURSE _apart ${CMAKE_CURRENT_BINARY_DIR}/rosidl_generator_c/*__description.c)
  set_source_files_properties(${_apart} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  foreach(library generator_c generator_py typesupport_c typesupport_fastrtps_c typesupport_introspection_c)
    set_target_properties(${PROJECT_NAME}__rosidl_${library} PROPERTIES
      UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 20)
  endforeach()
endmacro()
