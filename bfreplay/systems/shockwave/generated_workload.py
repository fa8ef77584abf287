"""placeholder"""


def jobs_named(text, curves):
    raise NotImplementedError
