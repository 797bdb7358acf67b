from keystead.inventory.documents.mentions import Scope


def test_a_scope_is_changed_by_making_another():
    scope = Scope(("A",), prefix="x:")
    assert scope.within(owner="x:{y}") == Scope(("A",), prefix="x:", owner="x:{y}") and scope.owner == ""
