import { describe, expect, it } from 'vitest';
import { dataFolder, hubsFolder } from '../../src/state/user-files.js';

const HOME = '/home/ada';
const WINDOWS_HOME = 'C:\\Users\\ada';

describe('the data folder', () => {
  it.each([
    ['linux', HOME, {}, '/home/ada/.local/share/trunkline'],
    ['linux', HOME, { XDG_DATA_HOME: '/elsewhere' }, '/elsewhere/trunkline'],
    ['linux', HOME, { XDG_DATA_HOME: '' }, '/home/ada/.local/share/trunkline'],
    ['linux', HOME, { XDG_DATA_HOME: 'here' }, '/home/ada/.local/share/trunkline'],
    ['freebsd', HOME, { LOCALAPPDATA: '/elsewhere' }, '/home/ada/.local/share/trunkline'],
    ['darwin', HOME, { XDG_DATA_HOME: '/elsewhere' }, '/home/ada/Library/Application Support/trunkline'],
    ['win32', WINDOWS_HOME, { LOCALAPPDATA: 'D:\\Local' }, 'D:\\Local\\trunkline'],
    ['win32', WINDOWS_HOME, { LOCALAPPDATA: 'Local' }, 'C:\\Users\\ada\\AppData\\Local\\trunkline'],
    ['win32', WINDOWS_HOME, {}, 'C:\\Users\\ada\\AppData\\Local\\trunkline'],
  ])('on %s, at home in %s, with %j is %s', (platform, home, env, expected) => {
    expect(dataFolder({ env, home, platform })).toBe(expected);
  });
});

describe('the folder of hubs', () => {
  it('is the one that the user names by an absolute path, since clients run in different folders', () => {
    const named = (value: string) => hubsFolder({ env: { TRUNKLINE_HUB_DIR: value }, platform: 'linux' });
    expect(['/hubs', 'hubs', './hubs', ''].map(named)).toEqual(['/hubs', undefined, undefined, undefined]);
    expect(hubsFolder({ env: {}, platform: 'win32' })).toBeUndefined();
  });
});
