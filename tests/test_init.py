import subprocess
import sys

import marlctl


def test_dir_lists_the_public_names_and_imports_none_of_them():
    assert set(marlctl.__all__) <= set(dir(marlctl))
    code = "import sys, marlctl; dir(marlctl); print(sorted({'numpy', 'torch', 'marlctl.library'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
