"""From shares of time to rounds: who runs on which nodes until the next round."""
