import { isDeepStrictEqual } from 'node:util';
import type { Config } from '../../config/resolve/config.js';
import type { OwnTool } from '../../gateway/routing/own-tool.js';
import type { CreateFeature } from '../feature.js';
import { LargeResults } from './large-results.js';

/** Cuts large results, with a tool that reads the rest, from the first configuration on that limits results. */
export const largeResults: CreateFeature = ({ platform: { clock }, seals }) => {
  let results: LargeResults | undefined;
  let limits: ReturnType<typeof limitsIn> = [];
  let tools: readonly OwnTool[] = [];
  return {
    apply: (config) => {
      const now = limitsIn(config);
      // The limits decide which clients see the tool.
      if (isDeepStrictEqual(now, limits)) return;
      limits = now;
      const cuts = now.some(({ maxBytes = 0, maxBinaryBytes = 0 }) => maxBytes > 0 || maxBinaryBytes > 0);
      if (cuts) results ??= new LargeResults(clock, seals.run);
      tools = results === undefined ? [] : [{ ...results.tool }];
    },
    close: () => {},
    get results() {
      return results;
    },
    get tools() {
      return tools;
    },
    get facts() {
      return { keptResults: results?.kept };
    },
  };
};

function limitsIn({ servers, gateway: { views } }: Config) {
  return [
    ...servers.map(({ key, results }) => ({ key, ...results })),
    ...views.map(({ name, results }) => ({ name, ...results })),
  ];
}
