"""The bits a key in the table "Choosing" of docs/FILTERS.md are those of `tamis filter size`:
filters_page_test.py PATH_OF_TAMIS PATH_OF_FILTERS.MD"""

import re
import subprocess
import sys
import unittest

TAMIS, PAGE = sys.argv[1:]
RATES = (0.01, 0.001)  # of the two figures
FIGURES = re.compile(r"([0-9.]+)(?: \([^)]*\))? / ([0-9.]+)")


def sizes(fpr):
    """Bits a key by the name of the type."""
    out = subprocess.run([TAMIS, "filter", "size", "--capacity", "1000000", "--fpr", str(fpr)],
                         capture_output=True, text=True, check=True).stdout
    return {line.split()[0]: float(line.split()[1]) for line in out.split("\n\n")[0].splitlines()[1:]}


def rows():
    """Class, name in commands, and last column of each row."""
    with open(PAGE, encoding="utf-8") as file:
        section = file.read().split("\n## Choosing\n\n")[1].split("\n\n")[0]
    for line in section.splitlines()[2:]:
        *_, name, figures = [cell.strip() for cell in line.strip("|").split("|")]
        class_name, name = re.fullmatch(r"`(\w+)`, `([a-z-]+)`", name).groups()
        yield class_name, name, figures


class FiltersPageTest(unittest.TestCase):
    def assert_rounded(self, written, exact):
        """`written` is `exact`, which itself was rounded to two digits, with fewer digits."""
        unit = 10.0 ** -len(written.partition(".")[2])
        self.assertLessEqual(abs(float(written) - exact), unit / 2 + 0.005)

    def test_every_type_has_its_row(self):
        self.assertEqual(sorted(name for _, name, _ in rows()), sorted(sizes(RATES[0])))

    def test_bits_a_key_are_those_of_the_command(self):
        exact = [sizes(fpr) for fpr in RATES]
        compared = 0
        for _, name, figures in rows():
            if figures == "as above, for each full layer":
                continue
            with self.subTest(name):
                for written, size in zip(FIGURES.match(figures).groups(), exact):
                    self.assert_rounded(written, size[name])
                    compared += 1
        self.assertEqual(compared, 2 * (len(exact[0]) - 1))

    def test_semi_sorting_takes_a_bit_less(self):
        (figures,) = [figures for _, name, figures in rows() if name == "cuckoo"]
        semi_sorted = FIGURES.match(figures.partition("semi-sorted ")[2]).groups()
        for written, fpr in zip(semi_sorted, RATES):
            self.assert_rounded(written, sizes(fpr)["cuckoo"] - 1 / 0.95)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
