from kin_tools.stack_book import Health, StackBook


def health(book, now):
    return {node.name: node.health for node in book.view(now).nodes}


def test_from_missing_to_healthy_and_back():
    book = StackBook(["/a", "/b"], silence=1.5)
    assert health(book, 0.0) == {"/a": Health.MISSING, "/b": Health.MISSING}
    assert "/a is missing; /b is missing" in book.view(0.0).message
    book.present(["/a", "/b"])
    book.managed("/a")
    book.managed("/b")
    assert health(book, 1.0) == {"/a": Health.STARTING, "/b": Health.STARTING}
    book.answered("/a", "inactive", 1.0)
    book.answered("/b", "active", 1.0)
    view = book.view(1.1)
    assert not view.ready
    assert view.names(Health.STARTING) == ["/a"]
    book.answered("/a", "active", 1.2)
    assert book.view(1.3).ready
    assert book.view(1.3).message == "2 of 2 nodes ready"
    book.present(["/a"])
    assert health(book, 1.4) == {"/a": Health.HEALTHY, "/b": Health.MISSING}


def test_killed_node_stays_in_the_graph_and_is_silent():
    book = StackBook(["/a"], silence=1.5)
    book.present(["/a"])
    book.answered("/a", "active", 0.0)
    assert health(book, 1.4)["/a"] == Health.HEALTHY
    (node,) = book.view(1.6).nodes
    assert node.health == Health.SILENT
    assert node.message == "is silent for 1.6 s"
    book.answered("/a", "unconfigured", 3.0)  # it is back, and not active yet
    (node,) = book.view(3.0).nodes
    assert (node.health, node.restarts) == (Health.STARTING, 1)
    book.answered("/a", "active", 4.0)
    assert book.view(4.0).ready


def test_a_machine_that_stood_still_is_no_silence_of_its_nodes():
    book = StackBook(["/a"], silence=1.5)
    book.present(["/a"])
    book.answered("/a", "active", 0.0)
    assert health(book, 0.1)["/a"] == Health.HEALTHY
    assert health(book, 9.0)["/a"] == Health.HEALTHY  # nobody looked for 8.9 s
    for tick in range(1, 13):
        assert health(book, 9.0 + 0.1 * tick)["/a"] == Health.HEALTHY
    assert health(book, 10.6)["/a"] == Health.SILENT  # looked at all the time since


def test_busy_start_is_not_silence():
    book = StackBook(["/a"], silence=1.0)
    book.present(["/a"])
    book.answered("/a", "unconfigured", 0.0)
    assert health(book, 60.0)["/a"] == Health.STARTING


def test_diagnostics_are_a_sign_of_life_and_can_be_bad():
    book = StackBook(["/a"], silence=1.0)
    book.present(["/a"])
    book.answered("/a", "active", 0.0)
    book.diagnosed("/a", 0, "fine", 0.9)
    assert health(book, 1.8)["/a"] == Health.HEALTHY
    book.diagnosed("/a", 1, "hot", 1.8)
    assert book.view(1.9).nodes[0].message == "warns: hot"
    book.diagnosed("/a", 2, "on fire", 1.9)
    view = book.view(2.0)
    assert view.names(Health.UNHEALTHY) == ["/a"]
    assert "on fire" in view.message
    book.diagnosed("/a", 0, "fine", 2.1)
    assert book.view(2.2).ready


def test_unknown_names_in_diagnostics_are_dropped():
    book = StackBook([], silence=1.0)
    book.diagnosed("/stranger", 2, "x", 0.0)
    assert book.view(0.0).nodes == ()


def test_unexpected_nodes_are_shown_and_do_not_count():
    book = StackBook(["/a"], silence=1.0)
    book.present(["/a", "/guest"])
    book.answered("/a", "active", 0.0)
    book.answered("/guest", "inactive", 0.0)
    view = book.view(0.1)
    assert view.ready
    assert [node.name for node in view.nodes] == ["/a", "/guest"]
    book.present(["/a"])
    assert [node.name for node in book.view(0.2).nodes] == ["/a"]


def test_nothing_expected_counts_all_with_a_lifecycle():
    book = StackBook([], silence=1.0)
    assert not book.view(0.0).ready
    book.present(["/a", "/plain"])
    book.answered("/a", "inactive", 0.0)
    assert not book.view(0.1).ready
    book.answered("/a", "active", 0.2)
    assert book.view(0.3).ready
    assert book.view(9.0).names(Health.HEALTHY, ["/plain"]) == ["/plain"]


def test_finalized_is_unhealthy():
    book = StackBook(["/a"])
    book.present(["/a"])
    book.answered("/a", "finalized", 0.0)
    assert health(book, 0.1)["/a"] == Health.UNHEALTHY


def test_node_whose_services_are_not_there_yet_is_no_healthy_one():
    book = StackBook(["/a", "/plain"], silence=1.5)
    book.present(["/a", "/plain"])
    assert health(book, 0.0) == {"/a": Health.STARTING, "/plain": Health.STARTING}
    book.managed("/a")
    assert health(book, 4.0) == {"/a": Health.STARTING, "/plain": Health.HEALTHY}
    book.present(["/a"])
    assert health(book, 5.0)["/plain"] == Health.MISSING
    book.present(["/a", "/plain"])  # started again
    assert health(book, 6.0)["/plain"] == Health.STARTING
