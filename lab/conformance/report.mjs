/**
 * What is worth knowing of one version of the suite. `results` holds, for each target, a list of outcomes and `missing`:
 * the scenarios that are known not to pass, with their reasons.
 */
export function toReport(version, results, { isVerbose = false } = {}) {
  const counts = Object.entries(results).map(([target, { outcomes }]) => {
    return `${target} ${outcomes.filter(hasPassed).length} of ${outcomes.length}`;
  });
  const lines = [`Suite ${version}: ${counts.join(', ')}`];
  if (isVerbose) {
    for (const [target, { outcomes }] of Object.entries(results)) {
      lines.push('', ...outcomes.flatMap(toLines(target)), '');
    }
  }
  for (const [target, result] of Object.entries(results)) {
    const { lost, known, found } = judge(result);
    lines.push(
      ...section(
        `Failed, ${target}`,
        lost.map(({ name, faults }) => [name, faults]),
      ),
      ...section(`Listed as missing, ${target}`, byReason(known, result.missing)),
      ...section(
        `Listed as missing, but passed, ${target}`,
        found.map(({ name }) => [name, []]),
      ),
    );
  }
  return lines.join('\n');
}

/**
 * Compares outcomes with the list of what is missing. `lost` failed without being listed, `known` are listed and failed,
 * `found` are listed and passed.
 */
function judge({ outcomes, missing = {} }) {
  const isListed = ({ name }) => Object.hasOwn(missing, name);
  const failed = outcomes.filter((outcome) => !hasPassed(outcome));
  return {
    lost: failed.filter((outcome) => !isListed(outcome)),
    known: failed.filter(isListed),
    found: outcomes.filter((outcome) => hasPassed(outcome) && isListed(outcome)),
  };
}

/** Whether everything passed that is not listed as missing, and nothing else. */
export function isAsListed(result) {
  const { lost, found } = judge(result);
  return lost.length === 0 && found.length === 0;
}

/** One entry for each reason, with the names of its scenarios. */
function byReason(outcomes, missing) {
  const names = new Map();
  for (const { name } of outcomes) names.set(missing[name], [...(names.get(missing[name]) ?? []), name]);
  return [...names].map(([reason, list]) => [reason, [list.join(', ')]]);
}

function hasPassed({ faults }) {
  return faults.length === 0;
}

function section(title, entries) {
  if (entries.length === 0) return [];
  return [`  ${title}:`, ...entries.flatMap(([name, remarks]) => [`    ${name}`, ...remarks.map(indented)])];
}

function toLines(target) {
  return ({ name, checks, faults }) => [
    `  ${faults.length === 0 ? 'pass' : 'FAIL'}  ${target}  ${name}`,
    ...checks.map(({ status, id, errorMessage }) =>
      indented(`${status} ${id}${errorMessage ? `: ${errorMessage}` : ''}`),
    ),
  ];
}

function indented(text) {
  return `      ${text.replaceAll('\n', '\n      ')}`;
}
