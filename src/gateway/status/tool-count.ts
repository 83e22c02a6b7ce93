/** Numbers of tools beyond which clients leave some out; which one does so at which changes with their versions. */
const STEPS = [40, 80, 128];

/** The largest of the numbers that so many tools reach; 0 if none. */
function toolCountStep(count: number): number {
  return STEPS.findLast((step) => count >= step) ?? 0;
}

/** What to tell a person about so many tools; empty if nothing. */
export function adviseOnToolCount(count: number): string {
  const step = toolCountStep(count);
  if (step === 0) return '';
  return `${count} tools are listed. There are clients that take no more than ${step}, and models choose worse among many: \`tools.allow\` and \`tools.deny\` of a server say which of its tools to list.`;
}

/** Says so once for each of the numbers, when it is first reached; `tell` is given what is to be said. */
export function createToolCountWarning(tell: (advice: string) => void): (count: number) => void {
  let told = 0;
  return (count) => {
    const step = toolCountStep(count);
    if (step <= told) return;
    told = step;
    tell(adviseOnToolCount(count));
  };
}
