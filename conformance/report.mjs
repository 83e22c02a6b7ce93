/** What is worth knowing of one version of the suite; `results` holds a list of outcomes for each target. */
export function toReport(version, results, { isVerbose = false } = {}) {
  const counts = Object.entries(results).map(([target, outcomes]) => {
    return `${target} ${outcomes.filter(hasPassed).length} of ${outcomes.length}`;
  });
  const lines = [`Suite ${version}: ${counts.join(', ')}`];
  if (isVerbose) {
    for (const [target, outcomes] of Object.entries(results)) lines.push('', ...outcomes.flatMap(toLines(target)), '');
  }
  lines.push(...section('Lost behind Trunkline', lostScenarios(results)));
  lines.push(...section('Failed without Trunkline', results.direct.filter(hasFailed)));
  return lines.join('\n');
}

/**
 * The outcomes behind Trunkline of scenarios that pass without it.
 * @param {Record<string, any[]>} results
 */
export function lostScenarios({ direct, Trunkline = [] }) {
  const passed = new Set(direct.filter(hasPassed).map(({ name }) => name));
  return Trunkline.filter((outcome) => hasFailed(outcome) && passed.has(outcome.name));
}

export function hasPassed({ faults }) {
  return faults.length === 0;
}

function hasFailed(outcome) {
  return !hasPassed(outcome);
}

function section(title, outcomes) {
  if (outcomes.length === 0) return [];
  return [`  ${title}:`, ...outcomes.flatMap(({ name, faults }) => [`    ${name}`, ...faults.map(indented)])];
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
