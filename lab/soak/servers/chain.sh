#!/bin/sh
# Starts a successor in a session of its own and ends, again and again, until the folder is gone.
trap '' TERM
sleep 0.005
if [ -e "$1" ]; then setsid /bin/sh "$0" "$1" & fi
