/** Whether a host is `localhost` or a loopback IP address, also in brackets. Resolves no names. */
export function isLoopbackHost(host: string): boolean {
  return /^(localhost|127(\.\d+){3}|::1|\[::1\])$/.test(host);
}
