import { describe, expect, it } from 'vitest';
import { findConfinement, type SandboxMachine } from '../../../src/servers/sandbox/find-bubblewrap.js';

function machine(
  facts: Partial<SandboxMachine> & { readonly files?: Readonly<Record<string, string>> },
): SandboxMachine {
  const { files = {}, ...rest } = facts;
  return {
    ...{ platform: 'linux', arch: 'x64', path: '/bin', isProgram: (path) => path === '/bin/bwrap' },
    ...{ read: (path) => files[path] ?? '', tryIt: async () => undefined },
    ...rest,
  };
}

async function faultOf(facts: Parameters<typeof machine>[0]) {
  const found = await findConfinement(machine(facts));
  return found.isAvailable ? undefined : found.fault;
}

describe('whether servers can be confined', () => {
  it('finds bubblewrap in PATH, or where systems install it', async () => {
    expect(await findConfinement(machine({}))).toEqual({ isAvailable: true, program: '/bin/bwrap' });
    const elsewhere = machine({ path: undefined, isProgram: (path) => path === '/usr/bin/bwrap' });
    expect(await findConfinement(elsewhere)).toEqual({ isAvailable: true, program: '/usr/bin/bwrap' });
  });

  it.each([
    ['darwin', 'arm64', 'macOS on arm64'],
    ['win32', 'x64', 'Windows on x86-64'],
    ['linux', 'arm64', 'Linux on arm64'],
  ])('says no on %s with %s, where nothing was tried', async (platform, arch, name) => {
    const fault = await faultOf({ platform, arch });
    expect(fault?.code).toBe('TL-SANDBOX-UNSUPPORTED');
    expect(fault?.reason).toContain(name);
  });

  it.each([
    ['ID=debian', 'sudo apt install bubblewrap'],
    ['ID=linuxmint\nID_LIKE="ubuntu debian"', 'sudo apt install bubblewrap'],
    ['ID=fedora', 'sudo dnf install bubblewrap'],
    ['ID="rocky"\nID_LIKE="rhel centos fedora"', 'sudo dnf install bubblewrap'],
    ['ID=arch', 'sudo pacman -S bubblewrap'],
    ['ID="opensuse-tumbleweed"', 'sudo zypper install bubblewrap'],
    ['ID=alpine', 'sudo apk add bubblewrap'],
    ['ID=other', 'install the package `bubblewrap` of your system'],
  ])('names the command that installs it: %j', async (release, command) => {
    const fault = await faultOf({ isProgram: () => false, files: { '/etc/os-release': release } });
    expect(fault?.code).toBe('TL-SANDBOX-MISSING');
    expect(fault?.remedy).toContain(command);
  });

  it.each([
    ['/proc/sys/user/max_user_namespaces', '0\n', 'sysctl user.max_user_namespaces'],
    ['/proc/sys/kernel/unprivileged_userns_clone', '0\n', 'sysctl kernel.unprivileged_userns_clone=1'],
    ['/proc/sys/kernel/apparmor_restrict_unprivileged_userns', '1\n', '/etc/apparmor.d/bwrap'],
    ['/none', '', 'in a container'],
  ])('names the setting that forbids its namespaces: %s', async (file, value, remedy) => {
    const fault = await faultOf({ tryIt: async () => 'Operation not permitted', files: { [file]: value } });
    expect(fault?.code).toBe('TL-SANDBOX-FORBIDDEN');
    expect(fault?.reason).toContain('Operation not permitted');
    expect(fault?.remedy).toContain(remedy);
  });
});
