import { posix, win32 } from 'node:path';
import { describe, expect, it } from 'vitest';
import { withFolders } from '../../../src/app/serve-hub.js';

describe('the search path of a hub', () => {
  it('gets the folders of a client that it does not have, after its own', () => {
    expect(withFolders('/usr/bin:/bin', '/home/me/bin:/bin:/opt/x:/opt/x', posix)).toBe(
      '/usr/bin:/bin:/home/me/bin:/opt/x',
    );
    expect(withFolders('C:\\Windows', 'D:\\node;C:\\Windows', win32)).toBe('C:\\Windows;D:\\node');
  });

  it('does not change for a client without a path, and takes no relative folder', () => {
    expect(withFolders('/usr/bin:/bin', '', posix)).toBe('/usr/bin:/bin');
    expect(withFolders('', './node_modules/.bin:.::/bin', posix)).toBe('/bin');
  });
});
