import { describe, expect, it } from 'vitest';
import { childEnvironment } from '../../src/process/environment.js';

const nodeDirectory = '/opt/node/bin';
const posix = { nodeDirectory, platform: 'linux', declared: {} };

describe('childEnvironment', () => {
  it('contains what a program needs to run, and nothing else', () => {
    const harmless = { HOME: '/home/me', LANG: 'C.UTF-8', LC_TIME: 'de_DE', TMPDIR: '/tmp', TZ: 'UTC', USER: 'me' };
    const secret = { AWS_SECRET_ACCESS_KEY: 'hunter2', NODE_OPTIONS: '--inspect', LD_PRELOAD: '/evil.so' };
    const environment = childEnvironment({ ...posix, parent: { ...harmless, ...secret, PATH: '/bin' } });
    expect(environment).toEqual({ ...harmless, PATH: '/opt/node/bin:/bin' });
  });

  it('skips functions that a shell exported', () => {
    const environment = childEnvironment({ ...posix, parent: { TERM: '() { :; }; evil', PATH: '/bin' } });
    expect(environment).not.toHaveProperty('TERM');
  });

  it("adds what the entry declares, which takes precedence, with Trunkline's Node first in PATH", () => {
    const declared = { API_KEY: 'k', HOME: '/elsewhere', PATH: '/own' };
    const environment = childEnvironment({ ...posix, parent: { HOME: '/home/me', PATH: '/bin' }, declared });
    expect(environment).toEqual({ API_KEY: 'k', HOME: '/elsewhere', PATH: '/opt/node/bin:/own' });
  });

  it('has a PATH even if Trunkline has none', () => {
    expect(childEnvironment({ ...posix, parent: {} })).toEqual({ PATH: nodeDirectory });
  });

  it('compares names without case on Windows', () => {
    const environment = childEnvironment({
      parent: { Path: 'C:\\Windows', SystemRoot: 'C:\\Windows', HOME: 'x' },
      declared: { path: 'D:\\own' },
      nodeDirectory: 'C:\\node',
      platform: 'win32',
    });
    expect(environment).toEqual({ PATH: 'C:\\node;D:\\own', SYSTEMROOT: 'C:\\Windows' });
  });
});
