import type { ControlCommand } from '../hub/server/control-connection.js';
import type { HubLife } from './hub-life.js';
import type { Platform } from './platform.js';
import type { RunningHub } from './serve-hub.js';

export interface HubCommandsOptions {
  /** Resolves when the servers are being started. */
  readonly running: Promise<RunningHub>;
  readonly life: HubLife;
  readonly platform: Pick<Platform, 'clock'>;
  /** The folder of the hub. */
  readonly folder: string;
}

/** The commands that a person can give to a running hub. */
export function hubCommands({ running, life }: HubCommandsOptions): Readonly<Record<string, ControlCommand>> {
  return {
    /** Another hub serves from now on: this one ends when its clients have moved there. */
    move: async () => {
      const { clients } = await running;
      life.endAfterClients();
      clients.move();
    },
    /** Ends at once. A client starts another hub when it needs one. */
    stop: async () => {
      const { clients } = await running;
      clients.close('stopped');
      life.end('ending');
    },
  };
}
