// The name of Trunkline in the official registry of MCP, which `package.json` and `server.json` both have.

const PLACEHOLDER = 'io.github.OWNER/';

/** Why a release with these files would not be accepted, and what to do; undefined if nothing is wrong with the name. */
export function registryNameFault({ mcpName = '' }, { name = '' }) {
  if ([mcpName, name].some((each) => each.startsWith(PLACEHOLDER)))
    return `OWNER in ${PLACEHOLDER}trunkline is a placeholder. Replace it with the GitHub account or organization that publishes Trunkline, in \`mcpName\` of package.json and in \`name\` of server.json. See docs/releasing.md.`;
  if (mcpName !== name)
    return `\`mcpName\` of package.json is ${mcpName}, and \`name\` of server.json is ${name}. The registry needs the same name in both.`;
  return undefined;
}
