"""What a back end must do."""


class BackendContract:
    """To be filled."""
