"""Random hierarchical linkages that keep the rules, for the tests."""

from __future__ import annotations

from hier_ik import JOINT_TYPES, Linkage, frame
from kin_core.rotations import exp_so3

TYPES = (
    "fixed", "revolute", "prismatic", "universal", "cylindrical", "cartesian2", "spherical",
    "planar", "cartesian3", "point_slider", "point_plane", "general",
)  # fmt: skip
DISPOSITIONS = ("driving", "driven", "simultaneous")


def random_linkage(rng, links=14, subs=5, closures=8, types=TYPES, lock=0.15) -> Linkage:
    linkage = Linkage()
    linkage.add_link("l0")
    top = linkage.top
    waiting = []
    names = [top]
    for i in range(subs):
        parent = names[rng.integers(len(names))]
        waiting.append((f"S{i}", parent, DISPOSITIONS[rng.integers(3)]))
        names.append(f"S{i}")
    members = {top: ["l0"]}
    count = 0

    def grow(sub, anchors):
        nonlocal count
        count += 1
        name = f"l{count}"
        linkage.add_link(name, sub)
        members.setdefault(sub, []).append(name)
        linkage.add_joint(
            f"t{count}",
            types[rng.integers(len(types))],
            anchors[rng.integers(len(anchors))],
            name,
            closure=False,
            xyz=rng.normal(size=3),
            rpy=rng.normal(size=3),
            locked=bool(rng.random() < lock),
        )

    def anchors_of(sub):
        out = list(members[sub])
        for s in linkage.sublinkages.values():
            if s.parent == sub and s.disposition != "driven" and s.name in members:
                out += members[s.name]
        return out

    while waiting or count < links - 1:
        ready = [w for w in waiting if w[1] in members]
        if ready and (rng.random() < 0.4 or count >= links - 1):
            entry = ready[rng.integers(len(ready))]
            waiting.remove(entry)
            name, parent, disposition = entry
            linkage.add_sublinkage(name, disposition, parent=parent)
            grow(name, members[parent])
        else:
            sub = list(members)[rng.integers(len(members))]
            grow(sub, anchors_of(sub))
    for i in range(closures):
        add_random_closure(linkage, rng, f"c{i}", types)
    return linkage


def add_random_closure(linkage, rng, name, types=TYPES) -> bool:
    """Between two links of one sublinkage, or across one boundary."""
    links = list(linkage.links.values())
    a = links[rng.integers(len(links))]
    subs = linkage.sublinkages
    near = [
        l.name
        for l in links
        if l.name != a.name
        and (
            l.sublinkage == a.sublinkage
            or subs[l.sublinkage].parent == a.sublinkage
            or subs[a.sublinkage].parent == l.sublinkage
        )
    ]
    if not near:
        return False
    linkage.add_joint(
        name,
        types[rng.integers(len(types))],
        a.name,
        near[rng.integers(len(near))],
        closure=True,
        xyz=rng.normal(size=3),
        rpy=rng.normal(size=3),
    )
    return True


def random_frame(rng):
    return frame(rng.normal(size=3), rotation=exp_so3(rng.normal(size=3)))


def chain_with(tree_types, closure_type, rng):
    l = Linkage()
    l.add_link("l0")
    for i, t in enumerate(tree_types):
        l.add_link(f"l{i + 1}")
        l.add_joint(
            f"j{i}",
            t,
            f"l{i}",
            f"l{i + 1}",
            origin=random_frame(rng),
            child_origin=random_frame(rng),
            closure=False,
            value=rng.uniform(-1, 1, JOINT_TYPES[t].dof),
        )
    n = len(tree_types)
    # the closure joins the two ends of a fork, so that both signs of the chain occur
    l.add_link("side")
    l.add_joint(
        "s",
        "universal",
        "l1",
        "side",
        origin=random_frame(rng),
        closure=False,
        value=rng.uniform(-1, 1, 2),
    )
    l.add_joint(
        "c",
        closure_type,
        f"l{n}",
        "side",
        origin=random_frame(rng),
        child_origin=random_frame(rng),
        closure=True,
    )
    return l
