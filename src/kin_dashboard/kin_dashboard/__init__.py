"""The dashboard: one page with the whole stack, moving, for any browser on this machine.

It is an ordinary client: it knows the systems by their topics, services and actions alone, and any
of them may be absent. One module per panel; ``page`` holds the browser side, ``node`` the ROS side.
"""
