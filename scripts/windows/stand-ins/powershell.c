// Answers the one question that Trunkline asks PowerShell: which processes run. Wine has no PowerShell. Prints a line a process, in
// UTF-8: its pid, the pid of its parent, its start in milliseconds since 1970, and its command line.
#include <windows.h>
#include <winternl.h>
#include <tlhelp32.h>
#include <stdio.h>

typedef NTSTATUS(NTAPI *Query)(HANDLE, int, PVOID, ULONG, PULONG);

static wchar_t line[65536];
static char text[200000];

static void read_line(HANDLE process, Query query) {
  PROCESS_BASIC_INFORMATION basic;
  PEB peb;
  RTL_USER_PROCESS_PARAMETERS parameters;
  SIZE_T read;
  ULONG length;
  if (query(process, 0, &basic, sizeof basic, &length)) return;
  if (!ReadProcessMemory(process, basic.PebBaseAddress, &peb, sizeof peb, &read)) return;
  if (!ReadProcessMemory(process, peb.ProcessParameters, &parameters, sizeof parameters, &read)) return;
  SIZE_T bytes = parameters.CommandLine.Length;
  if (bytes > sizeof line - 2) bytes = sizeof line - 2;
  if (ReadProcessMemory(process, parameters.CommandLine.Buffer, line, bytes, &read)) line[bytes / 2] = 0;
}

int main(int argc, char **argv) {
  int is_known = 0;
  for (int at = 1; at < argc; at++) is_known |= strstr(argv[at], "Win32_Process") != NULL;
  if (!is_known) return 1;
  Query query = (Query)GetProcAddress(GetModuleHandleA("ntdll.dll"), "NtQueryInformationProcess");
  HANDLE snapshot = CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0);
  PROCESSENTRY32W entry = {.dwSize = sizeof entry};
  for (BOOL more = Process32FirstW(snapshot, &entry); more; more = Process32NextW(snapshot, &entry)) {
    HANDLE process = OpenProcess(PROCESS_QUERY_INFORMATION | PROCESS_VM_READ, FALSE, entry.th32ProcessID);
    FILETIME made, ended, kernel, user;
    if (process == NULL) continue;
    line[0] = 0;
    read_line(process, query);
    DWORD code;
    BOOL runs = GetExitCodeProcess(process, &code) && code == STILL_ACTIVE;
    if (runs && GetProcessTimes(process, &made, &ended, &kernel, &user)) {
      ULONGLONG ticks = ((ULONGLONG)made.dwHighDateTime << 32) | made.dwLowDateTime;
      for (wchar_t *at = line; *at; at++)
        if (*at == '\n' || *at == '\r') *at = ' ';
      WideCharToMultiByte(CP_UTF8, 0, line, -1, text, sizeof text, 0, 0);
      printf("%lu %lu %llu %s\n", entry.th32ProcessID, entry.th32ParentProcessID, ticks / 10000 - 11644473600000ULL, text);
    }
    CloseHandle(process);
  }
  return 0;
}
