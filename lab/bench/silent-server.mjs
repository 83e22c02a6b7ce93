// Reads everything, answers nothing, and ends with its stdin.
process.stdin.resume();
