import { dirname } from 'node:path';
import { readSecretFile } from '../../files/secret-file.js';
import type { CheckedFile } from '../file/checked-file.js';
import type { Variables } from './expand.js';
import type { Keychain, KeychainOptions } from './keychain.js';
import { runSecretCommand, type SecretCommandOptions } from './secret-command.js';

/** A secret, or why there is none: a sentence without a period, and the next step. */
export type Secret = { readonly value: string } | { readonly fault: string; readonly hint: string };

export interface ReadSecretsOptions {
  /** The configuration file. */
  readonly configFile: string;
  /** The file with the secrets of this user. */
  readonly secretFile: string;
  readonly env: Variables;
  /** Default: 30 s for each command. */
  readonly timeoutMs?: SecretCommandOptions['timeoutMs'];
}

/** Reads these secrets: from their commands, or else from the file or the keychain. Runs each command once. */
export async function readSecrets(
  names: readonly string[],
  { secretCommands }: Pick<CheckedFile, 'secretCommands'>,
  { configFile, secretFile, env, timeoutMs }: ReadSecretsOptions,
): Promise<ReadonlyMap<string, Secret>> {
  const secrets = new Map<string, Secret>();
  const stored = names.filter((name) => !Object.hasOwn(secretCommands, name));
  const options = { cwd: dirname(configFile), env, ...(timeoutMs !== undefined && { timeoutMs }) };
  const inKeychain: string[] = [];
  if (stored.length > 0) {
    const file = await readSecretFile(secretFile);
    for (const name of stored) {
      if ('inKeychain' in file && file.inKeychain.has(name)) inKeychain.push(name);
      else secrets.set(name, storedSecret(name, file, secretFile));
    }
  }
  const keychain = inKeychain.length > 0 ? await openKeychain(options) : undefined;
  const run = async (name: string) => {
    const command = secretCommands[name];
    if (command === undefined) {
      const found = (await keychain?.read(name)) ?? { fault: 'this system has none that Trunkline can use' };
      secrets.set(name, 'value' in found ? found : lockedSecret(name, found.fault));
      return;
    }
    const outcome = await runSecretCommand(command, options);
    secrets.set(name, 'value' in outcome ? outcome : failedSecret(name, outcome.fault));
  };
  const [first, ...others] = names.filter((name) => Object.hasOwn(secretCommands, name) || inKeychain.includes(name));
  // A password manager or keychain that has to be unlocked asks once, and not once for each command.
  if (first !== undefined) await run(first);
  await Promise.all(others.map(run));
  return secrets;
}

/** Most people have no secret there. */
async function openKeychain(options: Omit<KeychainOptions, 'platform'>): Promise<Keychain | undefined> {
  const { systemKeychain } = await import('./keychain.js');
  return systemKeychain({ platform: process.platform, ...options });
}

function lockedSecret(name: string, fault: string): Secret {
  return {
    fault: `the secret ${name} cannot be read from the keychain: ${fault}`,
    hint: `unlock the keychain, or store the secret again: \`trunkline secret set ${name}\``,
  };
}

function storedSecret(name: string, file: Awaited<ReturnType<typeof readSecretFile>>, path: string): Secret {
  if ('fault' in file) {
    return {
      fault: `the file ${path} with the secrets cannot be used: ${file.fault}`,
      hint: 'correct or remove the file',
    };
  }
  const value = file.secrets.get(name);
  if (value !== undefined) return { value };
  return {
    fault: `there is no secret ${name}`,
    hint: `store it with \`trunkline secret set ${name}\`, or add a command for it below \`secretCommand:\``,
  };
}

function failedSecret(name: string, fault: string): Secret {
  return {
    fault: `the command of the secret ${name} failed: ${fault}`,
    hint: `run the command below \`secretCommand.${name}\` in a terminal to see why`,
  };
}
