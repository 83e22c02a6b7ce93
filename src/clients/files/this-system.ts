import { homedir } from 'node:os';
import type { ClientSystem } from './found-server.js';

/** The system of this process. Any system but macOS and Windows keeps its files where Linux does. */
export function thisSystem(): ClientSystem {
  const { platform, env } = process;
  return {
    platform: platform === 'darwin' || platform === 'win32' ? platform : 'linux',
    home: homedir(),
    cwd: process.cwd(),
    env,
  };
}
