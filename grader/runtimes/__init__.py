"""Runtime profiles: trusted configuration that says how programs of a language are compiled and run, and in what image.

Public here: `RuntimeProfile` and its parts (profile.py), `find_profile`, `load_profiles` (folders.py).
"""

from grader.runtimes.folders import LoadedProfile, available, data_folder, find_profile, load_profiles, profile_folders
from grader.runtimes.profile import RuntimeProfile, SelfTest

__all__ = [
    "LoadedProfile",
    "RuntimeProfile",
    "SelfTest",
    "available",
    "data_folder",
    "find_profile",
    "load_profiles",
    "profile_folders",
]
