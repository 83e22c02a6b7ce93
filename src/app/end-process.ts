/** How long file operations may take at the end, in which the last file is written. */
const FILES_END_WITHIN_MS = 500;
const POLL_MS = 20;

/**
 * Ends this process, with the exit code if that is possible.
 *
 * `process.exit` waits for operations in Node's thread pool, without end when one of them hangs, as on a network file
 * system that does not answer. Nothing else would end the process then, so it ends itself with SIGKILL. The caller has
 * ended the servers before.
 */
export async function endProcess(code: number): Promise<never> {
  await fileOperationsEnd();
  if (isFileOperationPending()) {
    // Its listeners write what the log still holds.
    process.emit('exit', code);
    process.stderr.write('trunkline: a file operation hangs, so Trunkline ends itself with SIGKILL\n');
    process.kill(process.pid, 'SIGKILL');
  }
  process.exit(code);
}

/** Resolves when no file operation is pending, or after half a second. */
export async function fileOperationsEnd(): Promise<void> {
  for (let waitedMs = 0; isFileOperationPending() && waitedMs < FILES_END_WITHIN_MS; waitedMs += POLL_MS) {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

function isFileOperationPending(): boolean {
  return process
    .getActiveResourcesInfo()
    .some((resource) => resource.startsWith('FSReq') || resource === 'FileHandleCloseReq');
}
