import { createRequire } from 'node:module';

export function packageVersion(): string {
  return manifest().version;
}

/** Minimum version of Node, such as `24.15`. */
export function oldestNode(): string {
  return manifest().engines.node.replace('>=', '');
}

export function isNodeTooOld(): boolean {
  const numbers = (version: string): number[] => version.split('.').map(Number);
  const [major = 0, minor = 0] = numbers(process.versions.node);
  const [oldestMajor = 0, oldestMinor = 0] = numbers(oldestNode());
  return major < oldestMajor || (major === oldestMajor && minor < oldestMinor);
}

/** The package imports itself by name, so that this works in `dist/`, too. */
function manifest(): { readonly version: string; readonly engines: { readonly node: string } } {
  return createRequire(import.meta.url)('service-local/package.json') as ReturnType<
    typeof manifest
  >;
}
