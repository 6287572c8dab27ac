"""What a system may suffer from: a file for each illness, with the function that finds it."""
