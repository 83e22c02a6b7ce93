#!/usr/bin/env node
import { parseArgs } from 'node:util';
import type { ExitCode, Settings } from './commands/settings.js';

const COMMANDS = ['serve', 'check', 'tools', 'call'] as const;
type Command = (typeof COMMANDS)[number];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    config: { type: 'string', short: 'c' },
    verbose: { type: 'boolean', short: 'v', multiple: true },
    'log-file': { type: 'string' },
    version: { type: 'boolean' },
    help: { type: 'boolean', short: 'h' },
  },
});
const settings: Settings = {
  config: values.config,
  verbosity: values.verbose?.length ?? 0,
  logFile: values['log-file'],
};
const { serve } = await import('./commands/serve.js');
process.exit(await serve(settings));
