const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

/**
 * Describes a number of bytes in the units of the configuration, such as `1.2 GiB`. Rounds up to one decimal place, so
 * that what exceeds a limit also reads as more than the limit.
 */
export function describeBytes(bytes: number): string {
  const power = bytes < 1024 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log2(bytes) / 10));
  return `${Math.ceil((bytes / 1024 ** power) * 10) / 10} ${UNITS[power]}`;
}
