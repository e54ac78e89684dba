"""python -m onnxrl is the program that pip has installed beside Python."""
import os
import subprocess
import sys
import sysconfig


def program():
    name = "onnxrl.exe" if os.name == "nt" else "onnxrl"
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    user = sysconfig.get_path("scripts", "nt_user" if os.name == "nt" else "posix_user")
    # pip install, pip install --user, pip install --target.
    tried = [os.path.join(folder, name) for folder in (sysconfig.get_path("scripts"), user, os.path.join(here, "bin"))]
    for file in tried:
        if os.path.isfile(file):
            return file
    sys.exit(f"onnxrl: the program is in none of {tried}: expected it where pip installs programs")


if __name__ == "__main__":
    args = [program(), *sys.argv[1:]]
    if os.name == "nt":
        sys.exit(subprocess.run(args).returncode)
    os.execv(args[0], args)
