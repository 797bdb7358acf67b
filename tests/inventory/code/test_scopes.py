"""Where names live."""

from keystead.inventory.code.reading import read_source


def test_functions_know_their_class_and_qualified_name() -> None:
    file = read_source(b"class A:\n    def f(self, x=1):\n        def g(): pass\n", "a.py", "python")
    names = {scope.qualified for scope in file.scopes}

    assert names == {"", "A", "A.f", "A.f.g"}
    method = file.module.classes["A"].functions["f"][0]
    assert method.class_name == "A" and method.param("x") is not None and method.param("self") is None


def test_a_method_of_go_belongs_to_its_receiver() -> None:
    file = read_source(b"package a\nfunc (s *Store) Key() string { return s.p }\n", "a.go", "go")

    assert file.module.classes["Store"].functions["Key"][0].qualified == "Store.Key"
    assert file.text((0, 9)) == "package a"
