// The renewals of logins at the authorization server of a run.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { kill } from './hub-place.mjs';

/** The requests to renew a login, whose times and whose senders a run controls. */
export class Renewals {
  /** Their forms. */
  forms = [];
  /** Number of the requests that the authorization server never saw, because their process was killed. */
  dropped = 0;
  /** When every process counts the newest token as ended, on the wall clock. */
  endsAt = 0;
  #server;
  /** Called with the socket of the next request, once the authorization server has answered it and before the answer is sent. */
  #onPost;
  /** The process that is killed at the next request, and those that it is one of. */
  #victim;

  constructor(server) {
    this.#server = server;
    server.before = (one, response) => this.#watch(one, response);
  }

  /**
   * Call this when every call that waited for a token is answered. A process counts the lifetime from when it has read the token,
   * a little later than the authorization server, which alone does not end it in time: it allows 15 s for clocks that differ.
   */
  tokenRead() {
    this.endsAt = Date.now() + this.#server.lifetimeSeconds * 1_000;
  }

  /** From now on, the server refuses all tokens that were given out. */
  refuseAll() {
    for (const secret of this.#server.secrets) this.#server.refused.add(secret);
  }

  /** Kills the process that renews next, between the answer and its arrival. Resolves with its pid. `pids` returns those it can be. */
  killNext(pids) {
    return new Promise((resolve, reject) => {
      this.#onPost = (socket) => {
        const pid = peerOf(socket, pids());
        if (pid === undefined) reject(new Error('no process of the run has sent the request'));
        else kill(pid, 'SIGKILL');
        resolve(pid);
      };
    });
  }

  /**
   * Kills the process `pid` when the next request arrives, whichever of `pids` has sent it. The authorization server sees no request of
   * the killed one, so no refresh token is used in vain.
   */
  killAtNext(pid, pids) {
    this.#victim = { pid, pids, isKilled: false };
  }

  /** Ends what `killAtNext` began. Returns whether the process was killed. */
  endKill() {
    const { isKilled } = this.#victim;
    this.#victim = undefined;
    return isKilled;
  }

  #watch({ path, form, socket }, response) {
    if (path !== '/token' || !form.includes('grant_type=refresh_token')) return false;
    if (this.#victim !== undefined && this.#isOfKilled(socket)) {
      this.dropped += 1;
      socket.destroy();
      return true;
    }
    this.forms.push(form);
    const { end } = response;
    response.end = (...rest) => {
      const onPost = this.#onPost;
      this.#onPost = undefined;
      onPost?.(socket);
      return end.apply(response, rest);
    };
    return false;
  }

  /** Whether the victim has sent a request. Kills it before the answer. A process that has ended has no connections. */
  #isOfKilled(socket) {
    const victim = this.#victim;
    const sender = peerOf(socket, victim.pids);
    if (!victim.isKilled) kill(victim.pid, 'SIGKILL');
    victim.isKilled = true;
    return sender === undefined || sender === victim.pid;
  }
}

/** The process, of these, at the other end of a connection from this machine. Others may have its port for other connections. */
function peerOf({ remotePort, localPort }, pids) {
  const end = (port) => `[0-9A-F]{8}:${port.toString(16).toUpperCase().padStart(4, '0')} `;
  const ends = new RegExp(`^ *\\d+: ${end(remotePort)}${end(localPort)}`);
  const line = readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .find((one) => ends.test(one));
  const inode = line?.trim().split(/\s+/)[9];
  const isOwner = (pid) => {
    try {
      return readdirSync(`/proc/${pid}/fd`).some((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`) === `socket:[${inode}]`);
    } catch {
      return false;
    }
  };
  return pids.find(isOwner);
}
