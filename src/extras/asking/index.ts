import type { Config } from '../../config/resolve/config.js';
import { internalError } from '../../host/errors/internal-error.js';
import type { CreateFeature } from '../feature.js';
import type { Questions } from './questions.js';

/**
 * Asks a person about requests for which a rule says `then: ask`: with a form in the client, or else on a page, on the command
 * line and with a notification of the desktop. `questions.ts` has the questions, and `own-questions.ts` the page for users over
 * HTTP. Loaded with the first of them.
 */
export const asking: CreateFeature = (host) => {
  let isOn = false;
  let settings: Config['gateway']['ask'];
  let loading: Promise<Questions> | undefined;
  let questions: Questions | undefined;
  const { publicUrl = '' } = host.config.gateway.http;
  const place = () =>
    host.features.first('persons') === undefined
      ? 'on the page of `trunkline web` or with `trunkline allow`'
      : `at ${publicUrl}/questions`;
  const load = () => {
    loading ??= Promise.all([import('./questions.js'), import('./notify-desktop.js')]).then(
      ([{ Questions }, { notifyDesktop: notify }]) => {
        const { platform, gateway, secrets } = host;
        questions = new Questions({
          ...{ clock: platform.clock, gateway, redact: secrets.redact, notify, place },
          settings: () => settings,
        });
        return questions;
      },
    );
    return loading;
  };
  const gate: NonNullable<ReturnType<CreateFeature>['gate']> = {
    concerns: ({ asks }) => asks !== undefined,
    hold: (request, pass) => {
      void load().then(
        (loaded) => loaded.hold(request, pass),
        () => request.exchange.fail(internalError()),
      );
    },
  };
  return {
    apply: ({ servers, gateway }) => {
      settings = gateway.ask;
      isOn = [...servers, ...gateway.views].some(({ rules = [] }) => rules.some(({ verdict }) => verdict === 'ask'));
    },
    close: () => questions?.close(),
    preload: async () => isOn && (await load()),
    routes: async () => {
      const { questionRoutes } = await import('./own-questions.js');
      return questionRoutes({ host, questions: await load(), groups: () => settings.by ?? [] });
    },
    get gate() {
      return isOn ? gate : undefined;
    },
    get questions() {
      return questions;
    },
    get facts() {
      return { questions: questions?.open ?? [] };
    },
  };
};
