// taskkill /PID n [/PID n]... [/T] [/F], which Wine does not have in full. As in Windows, the root process has to exist; /T ends its
// descendants by the pid of their parent.
#include <windows.h>
#include <tlhelp32.h>
#include <stdio.h>

#define MOST 4096
static PROCESSENTRY32 all[MOST];
static int count;

static int end_one(DWORD pid) {
  HANDLE process = OpenProcess(PROCESS_TERMINATE, FALSE, pid);
  int ok = process != NULL && TerminateProcess(process, 1);
  if (process != NULL) CloseHandle(process);
  printf(ok ? "SUCCESS: The process with PID %lu has been terminated.\n" : "ERROR: The process with PID %lu could not be terminated.\n", pid);
  return !ok;
}

static int exists(DWORD pid) {
  for (int at = 0; at < count; at++)
    if (all[at].th32ProcessID == pid) return 1;
  return 0;
}

static int end_tree(DWORD root, int tree) {
  DWORD set[MOST];
  int size = 0, code = 0;
  set[size++] = root;
  for (int at = 0; tree && at < size; at++)
    for (int other = 0; other < count && size < MOST; other++) {
      int known = all[other].th32ParentProcessID != set[at];
      for (int j = 0; j < size; j++) known |= set[j] == all[other].th32ProcessID;
      if (!known) set[size++] = all[other].th32ProcessID;
    }
  while (size > 0) code |= end_one(set[--size]);
  return code;
}

int main(int argc, char **argv) {
  DWORD pids[256];
  int size = 0, tree = 0, force = 0, code = 0;
  for (int at = 1; at < argc; at++) {
    if (!_stricmp(argv[at], "/T")) tree = 1;
    else if (!_stricmp(argv[at], "/F")) force = 1;
    else if (!_stricmp(argv[at], "/PID") && at + 1 < argc && size < 256) pids[size++] = strtoul(argv[++at], 0, 10);
    else return 1;
  }
  HANDLE snapshot = CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0);
  PROCESSENTRY32 entry = {.dwSize = sizeof entry};
  for (BOOL more = Process32First(snapshot, &entry); more && count < MOST; more = Process32Next(snapshot, &entry)) all[count++] = entry;
  for (int at = 0; at < size; at++) {
    if (!exists(pids[at])) code = 128;
    else if (!force) code = 1;
    else if (end_tree(pids[at], tree)) code = 1;
  }
  return code;
}
