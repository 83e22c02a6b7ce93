import { describe, expect, it, vi } from 'vitest';
import { ChildInstaller } from '../../../src/servers/packages/child-installer.js';
import type { PackageInstaller } from '../../../src/servers/packages/package-installer.js';
import type { ChildSpec } from '../../../src/spec/server-spec.js';
import { missingSpec } from '../supervision/sample-spec.js';

function specOf(name: string): ChildSpec {
  const spec = missingSpec();
  return { ...spec, key: name, ...(spec.missing && { missing: { ...spec.missing, name, shown: name } }) };
}

describe('the installer of servers', () => {
  it('F177: is loaded once, so that installations share its slots and run side by side', async () => {
    const obtain = vi.fn(async () => ({ program: '/store/program', locked: { version: '1.0.0' }, isNew: true }));
    const open = vi.fn(async () => ({ obtain }) as unknown as PackageInstaller);
    open.mockRejectedValueOnce(new Error('the program is gone'));
    const installer = new ChildInstaller({ open, logger: { info: () => {} } as never, onFailed: () => {} });
    expect(await installer.install(specOf('a')).outcome).toMatchObject({ kind: 'failed' });
    const outcomes = await Promise.all(['a', 'b', 'c'].map((name) => installer.install(specOf(name)).outcome));
    expect(outcomes.map(({ kind }) => kind)).toEqual(['installed', 'installed', 'installed']);
    expect([open.mock.calls.length, obtain.mock.calls.length]).toEqual([2, 3]);
  });
});
