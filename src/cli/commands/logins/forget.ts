import { basename, dirname } from 'node:path';
import { readConfig } from '../../../app/read-config.js';
import { currentFolder } from '../../../config/file/find-config.js';
import { principalOf } from '../../../downstream/users/jwt-check.js';
import { UserVariables } from '../../../downstream/users/user-variables.js';
import { openVault } from '../../../extras/cluster/open-stores.js';
import { EXIT, UsageError } from '../../../host/errors/usage-error.js';
import { systemClock } from '../../../host/observe/system-clock.js';
import { openControl } from '../../../hub/attach/control-client.js';
import { gatewayFolders } from '../../../hub/hub-folder.js';
import { removeCatalogues } from '../../../state/catalogue-cache.js';
import { findGateways } from '../../../state/gateway-file.js';
import { readToken } from '../../../state/token-file.js';
import { catalogueFolder, sealFile, userHubsFolder } from '../../../state/user-files.js';
import { endLogin } from '../../../upstream/auth/login.js';
import { VERSION } from '../../../version.js';
import { plural } from '../../../wire/json/printable.js';
import type { Invocation } from '../../command.js';
import { note, printJson, tell } from '../../output.js';
import { removeStored } from '../serve/users.js';
import { withLoginErrors } from './log-in.js';

/** `trunkline auth forget`: removes everything of a user who leaves: logins, variables, kept lists, and processes. */
export async function forget({ settings, words, isJson }: Invocation): Promise<number> {
  const [name = ''] = words;
  const config = await readConfig(settings);
  const { jwt, variables: folder } = config.gateway.http.auth ?? {};
  if (jwt === undefined)
    throw new UsageError(
      'the configuration has no users, because it has no `gateway.http.auth.jwt`',
      'run the command with the configuration of the gateway: --config FILE',
    );
  const user = principalOf(jwt.issuer, name);
  return await withLoginErrors(undefined, async () => {
    // A login that goes on in a browser would be stored afterwards.
    await endProcesses(user, config.file, () => {});
    // The URL of a server may have a variable of the user.
    const origin = new UserVariables({
      folder,
      names: () => config.servers.flatMap((server) => server.variables),
      environment: process.env,
      workingFolder: currentFolder(),
      now: () => 0,
      onFault: () => {},
    }).originOf({ principal: user, name, kind: 'user', groups: [] });
    const vault = await openVault(config);
    const logins: string[] = [];
    for (const { key } of config.servers) {
      const { spec } = config.serverFor(key, origin) ?? {};
      if (spec?.kind !== 'remote' || spec.user === undefined || spec.login === undefined) continue;
      const { result, problem } = await endLogin(
        { spec: { ...spec, login: spec.login }, vault, clock: systemClock },
        true,
      );
      if (result === 'logged_out') logins.push(key);
      if (problem !== null) tell(`trunkline: ${key}: the login is removed here, but ${problem}`);
    }
    await vault.forget(user);
    await vault.close();
    const secret = await readToken(sealFile());
    const lists = secret === undefined ? 0 : removeCatalogues(catalogueFolder(), user, secret);
    const variables = folder === undefined ? [] : (await removeStored(folder, { name, kind: 'user' })).removed;
    const gateways = await endProcesses(user, config.file, tell);
    if (isJson) await printJson({ user: name, logins, variables, lists, gateways });
    note(
      `Removed of the user ${name}: ${plural(logins.length, 'login')}, ${plural(variables.length, 'variable')}, ${plural(lists, 'kept list')}. ${plural(gateways.length, 'running gateway')} ended the processes of the user.`,
    );
    note('Tokens of the identity provider stay valid until they expire. Lock the user there.');
    return EXIT.ok;
  });
}

/** Has the running gateways of a configuration end the processes of a user. Resolves with their pids. */
async function endProcesses(
  user: string,
  configFile: string,
  warn: (text: string) => void,
): Promise<readonly number[]> {
  const running = await findGateways(gatewayFolders(userHubsFolder()));
  const pids: number[] = [];
  for (const { folder, pid } of running.filter((each) => each.configFile === configFile)) {
    const control = await openControl(dirname(folder), VERSION, basename(folder));
    if (typeof control === 'string') {
      warn(`trunkline: the gateway with pid ${pid} takes no commands, so processes of the user end when they are idle`);
      continue;
    }
    await control.request('forget', { user });
    control.close();
    pids.push(pid);
  }
  return pids;
}
