import { describe, expect, it } from 'vitest';
import { Workplace } from '../cli/cli-run.js';

describe('a server whose key is a path, a device or otherwise unusable', () => {
  it.each([
    ['../x', /this is not a valid server key/],
    ['CON', /this key is the name of a device on Windows/],
    ['x'.repeat(300), /this key has 300 characters/],
    ['a\0b', /this is not a valid server key/],
  ])('F54: is refused with the whole configuration: %j', async (key, reason) => {
    const place = new Workplace();
    try {
      place.write('trunkline.yaml', JSON.stringify({ servers: { [key]: { command: 'touch', args: ['started'] } } }));
      const { code, stdout, stderr } = await place.run(['check']);
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
      expect(stderr).toMatch(reason);
      expect(stderr).not.toContain('\0');
    } finally {
      place.dispose();
    }
  });
});
