import { createRequire } from 'node:module';

/** The version in this package's package.json; the package finds it by its own name, in `dist/` too. */
export function packageVersion(): string {
  return manifest().version;
}

/** The oldest Node that will do, such as `24.15`. */
export function oldestNode(): string {
  return manifest().engines.node.replace('>=', '');
}

/** Whether the Node that runs this is older than that. */
export function isNodeTooOld(): boolean {
  const numbers = (version: string): number[] => version.split('.').map(Number);
  const [major = 0, minor = 0] = numbers(process.versions.node);
  const [oldestMajor = 0, oldestMinor = 0] = numbers(oldestNode());
  return major < oldestMajor || (major === oldestMajor && minor < oldestMinor);
}

function manifest(): { readonly version: string; readonly engines: { readonly node: string } } {
  return createRequire(import.meta.url)('service-local/package.json') as ReturnType<
    typeof manifest
  >;
}
