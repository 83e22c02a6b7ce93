/** Families of sockets: local ones, those of IPv4 and IPv6, and the one in which a process lists its network interfaces. */
const UNIX = 1;
const INTERNET = [2, 10];
const INTERFACES = 16;

/** The flags of `clone` and `unshare` that make namespaces, in which a process would have capabilities again. */
const NEW_NAMESPACES = 0x7e02_0080;

/** The result codes of a filter. The two errors are EPERM and ENOSYS. */
const ALLOW = 0x7fff_0000;
const REFUSE = 0x0005_0001;
const ABSENT = 0x0005_0026;
const KILL = 0x8000_0000;

/** System calls of x86-64, by number. */
const X64 = {
  arch: 0xc000_003e,
  socket: 41,
  /** Their flags are the first argument. */
  clone: [56, 272],
  /**
   * Programs use others instead if these do not exist: `clone3` has its flags in memory, where no filter reads them, and
   * `io_uring` opens sockets without a system call.
   */
  absent: [435, 425, 426, 427],
  refused: [
    // The memory and descriptors of other processes: ptrace, process_vm_readv, process_vm_writev, pidfd_getfd, kcmp.
    ...[101, 310, 311, 438, 312],
    // Namespaces and mounts: setns, mount, umount2, pivot_root, chroot, open_tree to fspick, mount_setattr.
    // Lists of mounts, which show paths of the host: statmount, listmount.
    ...[308, 165, 166, 155, 161, 428, 429, 430, 431, 432, 433, 442, 457, 458],
    // Keys of the session, which no namespace hides: add_key, request_key, keyctl.
    ...[248, 249, 250],
    // The kernel: bpf, perf_event_open, userfaultfd, modules, kexec, syslog, reboot, swap, quotas, accounting, I/O ports.
    ...[321, 298, 323, 175, 176, 313, 246, 320, 103, 169, 167, 168, 179, 443, 163, 172, 173],
    // Files by handle, past all mounts: open_by_handle_at.
    304,
  ],
} as const;

/** Calls from this number on do not exist for the server, because they are newer than this list. */
const FIRST_UNKNOWN = 463;
/** Calls from this number on are those of x32, which do the same with other numbers. */
const X32 = 0x4000_0000;

/** Whether there is a filter for this kind of processor, named as in `process.arch`. */
export function hasFilter(arch: string): boolean {
  return arch === 'x64';
}

/**
 * The filter for the system calls of a confined process, as `struct sock_filter[]` of Linux on x86-64. It refuses sockets other
 * than those of IPv4, IPv6 and netlink, and all calls with which a process could reach another process or the kernel. Sockets to IP
 * addresses end in a network without devices. With `unixSockets`, the process may open local sockets.
 */
export function syscallFilter({ unixSockets }: { readonly unixSockets: boolean }): Buffer {
  const families = [...INTERNET, INTERFACES, ...(unixSockets ? [UNIX] : [])];
  return assemble([
    load(ARCH),
    ...unlessEqual(X64.arch, KILL),
    load(NUMBER),
    ...ifAtLeast(X32, REFUSE),
    ...ifAtLeast(FIRST_UNKNOWN, ABSENT),
    ...X64.absent.flatMap((number) => ifEqual(number, ABSENT)),
    ...X64.refused.flatMap((number) => ifEqual(number, REFUSE)),
    ...X64.clone.flatMap((number) => [
      skipUnlessEqual(number, 4),
      load(FIRST_ARGUMENT),
      ...ifAnyBit(NEW_NAMESPACES, REFUSE),
      answer(ALLOW),
    ]),
    skipUnlessEqual(X64.socket, 2 + 2 * families.length),
    load(FIRST_ARGUMENT),
    ...families.flatMap((family) => ifEqual(family, ALLOW)),
    answer(REFUSE),
    answer(ALLOW),
  ]);
}

/** Offsets in `struct seccomp_data`. The argument is read from its low half, because all values here fit into it. */
const NUMBER = 0;
const ARCH = 4;
const FIRST_ARGUMENT = 16;

/** An instruction: its code, the instructions to skip if its condition holds and if not, and its operand. */
type Instruction = readonly [code: number, ifTrue: number, ifFalse: number, operand: number];

const load = (offset: number): Instruction => [0x20, 0, 0, offset];
const answer = (result: number): Instruction => [0x06, 0, 0, result];
const skipUnlessEqual = (value: number, count: number): Instruction => [0x15, 0, count, value];
const ifEqual = (value: number, result: number): Instruction[] => [[0x15, 0, 1, value], answer(result)];
const unlessEqual = (value: number, result: number): Instruction[] => [[0x15, 1, 0, value], answer(result)];
const ifAtLeast = (value: number, result: number): Instruction[] => [[0x35, 0, 1, value], answer(result)];
const ifAnyBit = (bits: number, result: number): Instruction[] => [[0x45, 0, 1, bits], answer(result)];

function assemble(instructions: readonly Instruction[]): Buffer {
  const bytes = Buffer.alloc(instructions.length * 8);
  for (const [index, [code, ifTrue, ifFalse, operand]] of instructions.entries()) {
    bytes.writeUInt16LE(code, index * 8);
    bytes.writeUInt8(ifTrue, index * 8 + 2);
    bytes.writeUInt8(ifFalse, index * 8 + 3);
    bytes.writeUInt32LE(operand, index * 8 + 4);
  }
  return bytes;
}
