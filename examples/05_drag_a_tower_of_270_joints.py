"""Pull at the top of a tower of closed loops; what each joint must do follows.

Start the stack with ./kinstack up, then in another terminal:

    ./kinstack shell python examples/05_drag_a_tower_of_270_joints.py

It needs nothing of kinstack but its messages and visitor.py beside it.
"""

from kin_interfaces.msg import HierGoal, HierProblem
from kin_interfaces.srv import CheckAbstraction, Decompose, EditLinkage, LoadLinkage, SolveHierIK
from visitor import visit


def solve(stack):
    """Load a tower, see how it falls into parts, and drag its top."""
    request = LoadLinkage.Request(preset="tower", blocks=15)
    answer = stack.ask(LoadLinkage, "hier_ik/load", request)
    print(
        f"{answer.name}: {answer.links} links, {answer.tree_joints} tree joints, "
        f"{answer.closure_joints} loops to close, {answer.sublinkages} sublinkages."
    )

    answer = stack.ask(Decompose, "hier_ik/decompose", Decompose.Request())
    largest = max(len(part.joints) for part in answer.components)
    print(f"It falls into {len(answer.components)} parts that are solved one after the other;")
    print(f"the largest has {largest} joints.")

    goal = HierGoal(name="drag", priority=-1)
    position = goal.target.position
    goal.target.orientation.w = 1.0
    position.z = 11.6
    print("\nThe top is dragged to one side [m]:")
    for k in range(1, 5):
        position.x = 0.2 * k
        request = SolveHierIK.Request(problem=HierProblem(goals=[goal], tolerance=1e-9, keep=True))
        answer = stack.ask(SolveHierIK, "hier_ik/solve", request)
        worst = max(r.position for r in answer.solution.residuals)
        count = len(answer.solution.joint_names)
        print(
            f"  x = {position.x:.1f}: {count} real joints, every loop closed to "
            f"{worst:.0e} m, in {1e3 * answer.status.solve_time:.1f} ms"
        )
    change(stack)


def change(stack):
    """Limit the virtual joint that stands for the first block, and see what that breaks."""
    check = CheckAbstraction.Request(sublinkage="C1", samples=4, timeout=30.0)
    for lower, upper in ((0.6, 1.5), (0.65, 0.95)):
        edits = f"[{{op: set_limits, name: C1.expand, lower: {lower}, upper: {upper}}}]"
        stack.ask(EditLinkage, "hier_ik/edit", EditLinkage.Request(edits=edits))
        answer = stack.ask(CheckAbstraction, "hier_ik/check_abstraction", check)
        verdict = "promises too much" if answer.refuted else "promises nothing it cannot hold"
        print(f"A first block that may be {lower} to {upper} m high {verdict}.")


if __name__ == "__main__":
    with visit(__doc__) as stack:
        solve(stack)
