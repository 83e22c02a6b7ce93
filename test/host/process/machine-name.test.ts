import { describe, expect, it } from 'vitest';
import { readMachineName } from '../../../src/host/process/machine-name.js';

const ANSWER = `+-o J314sAP  <class IOPlatformExpertDevice>
    {
      "IOPlatformSerialNumber" = "X"
      "IOPlatformUUID" = "0A1B-2C3D"
    }`;

describe('the name of a machine', () => {
  it.each([
    ['linux', ANSWER, 'laptop-in-the-office', 'laptop-at-home'],
    ['win32', ANSWER, 'laptop-in-the-office', 'laptop-at-home'],
    ['darwin', ANSWER, '0A1B-2C3D', '0A1B-2C3D'],
    ['darwin', 'another answer', 'laptop-in-the-office', 'laptop-at-home'],
    ['darwin', undefined, 'laptop-in-the-office', 'laptop-at-home'],
  ])('on %s with the answer %j is %s, and %s after the network has renamed the host', (platform, answer, ...names) => {
    const ask = () => {
      if (answer === undefined) throw new Error('not allowed');
      return answer;
    };
    const read = (hostname: string) => readMachineName({ platform, hostname: () => hostname, ask });
    expect([read('laptop-in-the-office'), read('laptop-at-home')]).toEqual(names);
  });
});
