/** Variable of the script, not exported, with the path of `setsid`. */
export const SETSID_VARIABLE = 'trunkline_setsid';

/**
 * The helper that starts processes in the gateway's place: a shell script, because a shell is small.
 *
 * A request on stdin is an id, a folder, a number of lines, and commands of so many lines. For each request, one shell
 * makes named pipes in the folder, runs the commands in a session of their own, and waits for their end. On stdout it
 * tells `made`, `pid`, `up` and `exit`, each with the id. `up` means that the process has opened all three pipes. If the
 * gateway ends before that, the process would wait for the gateway's ends of the pipes; it is killed.
 */
export const POSIX_SPAWN_HELPER = `
trap '' HUP INT QUIT TERM PIPE
${SETSID_VARIABLE}=$(command -v setsid) && command -v mkfifo >/dev/null || exit 1
root=$1
while IFS= read -r id && IFS= read -r folder && IFS= read -r count; do
  text=
  while [ "$count" -gt 0 ] && IFS= read -r line; do
    text="$text$line
"
    count=$((count - 1))
  done
  [ "$count" -eq 0 ] || break
  (
    if ! mkfifo -m 600 "$folder/in" "$folder/out" "$folder/err"; then
      echo "exit $id 126"
      exit
    fi
    (
      trap - HUP INT QUIT TERM PIPE
      echo "made $id"
      exec 3>&1 <"$folder/in" >"$folder/out" 2>"$folder/err"
      echo "up $id" >&3
      exec 3>&-
      eval "$text"
    ) &
    echo "$!" >"$folder/pid"
    echo "pid $id $!"
    wait "$!"
    echo "exit $id $?"
  ) 2>/dev/null </dev/null &
done
for file in "$root"/*/pid; do
  if [ -f "$file" ]; then kill -s KILL "$(cat "$file")"; fi
done 2>/dev/null
rm -rf "$root" 2>/dev/null
`;
