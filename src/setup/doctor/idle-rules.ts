import { isDeepStrictEqual } from 'node:util';
import type { Config, ServerConfig } from '../../config/resolve/config.js';
import { type CallRule, RULED } from '../../config/rules/rule.js';
import { Globs } from '../../config/rules/spellings.js';
import { matchesGlob } from '../../wire/json/glob.js';
import { type Finding, finding } from './finding.js';

export interface RuledTool {
  readonly server: string;
  readonly original: string;
  readonly params: readonly string[];
}

/** Rules that are tried one after the other, with the names of the tools that they may be about, as the rules write them. */
interface Chain {
  readonly rules: readonly CallRule[];
  /** Empty if no server has listed its tools. */
  readonly tools: readonly (Pick<RuledTool, 'params'> & { readonly name: string })[];
}

/** Finds rules that can never match: behind a rule that decides first, or about names that no tool has. */
export function checkRules(
  { servers, gateway }: { readonly servers: readonly ServerConfig[] } & Pick<Config, 'gateway'>,
  listed: readonly RuledTool[],
): Finding[] {
  const chains: Chain[] = [
    ...servers.map(({ key, rules = [], shapes }) => {
      const own = listed.filter(({ server }) => server === key);
      const tools = own.map(({ original, params }) => {
        const { hide = [], set = {} } = shapes?.params?.[original] ?? {};
        return { name: original, params: [...params, ...hide, ...Object.keys(set)] };
      });
      return { rules, tools };
    }),
    ...gateway.views.map(({ rules = [] }) => ({
      rules,
      tools: listed.map(({ server, original, params }) => ({ name: `${server}__${original}`, params })),
    })),
  ];
  // A rule of `defaults` is in the chain of each server.
  const places = new Set(chains.flatMap(({ rules }) => rules.map(({ at }) => at)));
  return [...places].flatMap((at) => {
    const reasons = chains.flatMap((chain) => {
      const index = chain.rules.findIndex((rule) => rule.at === at);
      return index < 0 ? [] : [whyIdle(chain, index)];
    });
    const [reason] = reasons;
    const isIdle = reason !== undefined && !reasons.includes(undefined);
    return isIdle ? [finding('TL-RULE-IDLE', `the rule ${at} can never match`, [reason])] : [];
  });
}

function whyIdle({ rules, tools }: Chain, index: number): string | undefined {
  const rule = rules[index];
  if (rule === undefined) return undefined;
  const earlier = rules.slice(0, index).find((each) => covers(each, rule));
  if (earlier !== undefined) return `${earlier.at} decides first about all that it matches`;
  if (rule.tools === undefined || tools.length === 0) return undefined;
  const names = new Globs(rule.tools);
  const own = tools.filter(({ name }) => names.matches(name, { inAll: false, isName: true }));
  if (own.length === 0) return 'no listed tool has a name that it matches';
  const lacking = Object.entries(rule.args ?? {}).find(([path, values]) => {
    const [name = ''] = path.split(/[.[]/);
    return !values.includes(null) && own.every(({ params }) => params.length > 0 && !params.includes(name));
  });
  return lacking && `no tool that it matches has the argument ${lacking[0]}`;
}

/** Whether the earlier rule matches all that the later one does. False in doubt. */
function covers(earlier: CallRule, later: CallRule): boolean {
  const hasOtherArguments = earlier.args !== undefined && !isDeepStrictEqual(earlier.args, later.args);
  // Of a rule that allows, all spellings must match.
  if (hasOtherArguments || (earlier.verdict === 'allow' && later.verdict !== 'allow' && later.args !== undefined))
    return false;
  return RULED.some((kind) => {
    const wide = earlier[kind];
    const narrow = later[kind];
    if (wide === undefined || narrow === undefined) return false;
    if (isDeepStrictEqual(wide, narrow)) return true;
    if ([...wide, ...narrow].some((glob) => glob.startsWith('!'))) return false;
    return narrow.every((glob) => wide.some((each) => !each.includes('?') && matchesGlob(each, glob)));
  });
}
