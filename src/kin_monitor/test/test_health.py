from kin_monitor.health import Health, HealthTracker


def health(tracker, now):
    return {node.name: node.health for node in tracker.view(now).nodes}


def test_from_missing_to_healthy_and_back():
    tracker = HealthTracker(["/a", "/b"], silence=1.5)
    assert health(tracker, 0.0) == {"/a": Health.MISSING, "/b": Health.MISSING}
    assert "/a is missing; /b is missing" in tracker.view(0.0).message
    tracker.present(["/a", "/b"])
    tracker.managed("/a")
    tracker.managed("/b")
    assert health(tracker, 1.0) == {"/a": Health.STARTING, "/b": Health.STARTING}
    tracker.answered("/a", "inactive", 1.0)
    tracker.answered("/b", "active", 1.0)
    view = tracker.view(1.1)
    assert not view.ready
    assert view.names(Health.STARTING) == ["/a"]
    tracker.answered("/a", "active", 1.2)
    assert tracker.view(1.3).ready
    assert tracker.view(1.3).message == "2 of 2 nodes ready"
    tracker.present(["/a"])
    assert health(tracker, 1.4) == {"/a": Health.HEALTHY, "/b": Health.MISSING}


def test_killed_node_stays_in_the_graph_and_is_silent():
    tracker = HealthTracker(["/a"], silence=1.5)
    tracker.present(["/a"])
    tracker.answered("/a", "active", 0.0)
    assert health(tracker, 1.4)["/a"] == Health.HEALTHY
    (node,) = tracker.view(1.6).nodes
    assert node.health == Health.SILENT
    assert node.message == "is silent for 1.6 s"
    tracker.answered("/a", "unconfigured", 3.0)  # it is back, and not active yet
    (node,) = tracker.view(3.0).nodes
    assert (node.health, node.restarts) == (Health.STARTING, 1)
    tracker.answered("/a", "active", 4.0)
    assert tracker.view(4.0).ready


def test_a_machine_that_stood_still_is_no_silence_of_its_nodes():
    tracker = HealthTracker(["/a"], silence=1.5)
    tracker.present(["/a"])
    tracker.answered("/a", "active", 0.0)
    assert health(tracker, 0.1)["/a"] == Health.HEALTHY
    assert health(tracker, 9.0)["/a"] == Health.HEALTHY  # nobody looked for 8.9 s
    for tick in range(1, 13):
        assert health(tracker, 9.0 + 0.1 * tick)["/a"] == Health.HEALTHY
    assert health(tracker, 10.6)["/a"] == Health.SILENT  # looked at all the time since


def test_busy_start_is_not_silence():
    tracker = HealthTracker(["/a"], silence=1.0)
    tracker.present(["/a"])
    tracker.answered("/a", "unconfigured", 0.0)
    assert health(tracker, 60.0)["/a"] == Health.STARTING


def test_diagnostics_are_a_sign_of_life_and_can_be_bad():
    tracker = HealthTracker(["/a"], silence=1.0)
    tracker.present(["/a"])
    tracker.answered("/a", "active", 0.0)
    tracker.diagnosed("/a", 0, "fine", 0.9)
    assert health(tracker, 1.8)["/a"] == Health.HEALTHY
    tracker.diagnosed("/a", 1, "hot", 1.8)
    assert tracker.view(1.9).nodes[0].message == "warns: hot"
    tracker.diagnosed("/a", 2, "on fire", 1.9)
    view = tracker.view(2.0)
    assert view.names(Health.UNHEALTHY) == ["/a"]
    assert "on fire" in view.message
    tracker.diagnosed("/a", 0, "fine", 2.1)
    assert tracker.view(2.2).ready


def test_unknown_names_in_diagnostics_are_dropped():
    tracker = HealthTracker([], silence=1.0)
    tracker.diagnosed("/stranger", 2, "x", 0.0)
    assert tracker.view(0.0).nodes == ()


def test_unexpected_nodes_are_shown_and_do_not_count():
    tracker = HealthTracker(["/a"], silence=1.0)
    tracker.present(["/a", "/guest"])
    tracker.answered("/a", "active", 0.0)
    tracker.answered("/guest", "inactive", 0.0)
    view = tracker.view(0.1)
    assert view.ready
    assert [node.name for node in view.nodes] == ["/a", "/guest"]
    tracker.present(["/a"])
    assert [node.name for node in tracker.view(0.2).nodes] == ["/a"]


def test_nothing_expected_counts_all_with_a_lifecycle():
    tracker = HealthTracker([], silence=1.0)
    assert not tracker.view(0.0).ready
    tracker.present(["/a", "/plain"])
    tracker.answered("/a", "inactive", 0.0)
    assert not tracker.view(0.1).ready
    tracker.answered("/a", "active", 0.2)
    assert tracker.view(0.3).ready
    assert tracker.view(9.0).among(["/plain"]).names(Health.HEALTHY) == ["/plain"]


def test_finalized_is_unhealthy():
    tracker = HealthTracker(["/a"])
    tracker.present(["/a"])
    tracker.answered("/a", "finalized", 0.0)
    assert health(tracker, 0.1)["/a"] == Health.UNHEALTHY


def test_node_whose_services_are_not_there_yet_is_no_healthy_one():
    tracker = HealthTracker(["/a", "/plain"], silence=1.5)
    tracker.present(["/a", "/plain"])
    assert health(tracker, 0.0) == {"/a": Health.STARTING, "/plain": Health.STARTING}
    tracker.managed("/a")
    assert health(tracker, 4.0) == {"/a": Health.STARTING, "/plain": Health.HEALTHY}
    tracker.present(["/a"])
    assert health(tracker, 5.0)["/plain"] == Health.MISSING
    tracker.present(["/a", "/plain"])  # started again
    assert health(tracker, 6.0)["/plain"] == Health.STARTING


def test_chosen_nodes_are_judged_by_themselves_and_unknown_ones_are_missing():
    tracker = HealthTracker(["/a", "/b"])
    tracker.present(["/a"])
    tracker.answered("/a", "active", 1.0)
    view = tracker.view(1.0)
    assert not view.ready
    assert view.among(["/a"]).ready
    chosen = view.among(["/a", "/ghost"])
    assert chosen.message == "1 of 2 nodes ready; /ghost is missing"
    assert chosen.names(Health.MISSING) == ["/ghost"]
