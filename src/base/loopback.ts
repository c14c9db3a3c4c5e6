/** Whether a host name, as in a URL or alone, is that of this machine. Names are not resolved. */
export function isLoopbackHost(host: string): boolean {
  return /^(localhost|127(\.\d+){3}|::1|\[::1\])$/.test(host);
}
