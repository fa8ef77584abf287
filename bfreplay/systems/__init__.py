"""Published systems, a room each: their traces, throughputs and policies; its ``SYSTEM`` says what it adds."""
