"""PBS Pro, OpenPBS and TORQUE: the daily files of server_priv/accounting."""
