/** What a service manager such as systemd is told, as sd_notify(3) says. */
export interface Notifier {
  /** @param state such as `READY=1`; several in lines. */
  readonly notify: (state: string) => void;
  /** Within how many milliseconds it wants to hear `WATCHDOG=1` again, if it does. */
  readonly watchdogMs: number | undefined;
  readonly close: () => void;
}

const AF_UNIX = 1;
/** A datagram socket that children do not inherit. */
const SOCK_DGRAM_CLOEXEC = 2 | 0o2000000;
/** To wait for a manager that does not listen would stop the daemon. */
const MSG_DONTWAIT_NOSIGNAL = 0x40 | 0x4000;
const LONGEST_PATH = 107;

/**
 * A notifier for whoever started this process, or undefined when nobody wants to be told. The
 * variables that said so are removed, so that no child takes itself for the service.
 *
 * @param warn told once for each reason why the manager cannot be told.
 */
export async function openNotifier(
  env: NodeJS.ProcessEnv,
  warn: (text: string) => void,
): Promise<Notifier | undefined> {
  const { NOTIFY_SOCKET: path, WATCHDOG_USEC: usec, WATCHDOG_PID: pid } = env;
  for (const name of ['NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID']) delete env[name];
  if (!path) return undefined;
  const warned = new Set<string>();
  const fail = (why: string): void => {
    if (warned.has(why)) return;
    warned.add(why);
    warn(`the service manager at ${path} cannot be told how this runs: ${why}`);
  };
  try {
    const send = await openSocket(path);
    const isWatched = usec !== undefined && (pid === undefined || Number(pid) === process.pid);
    const watchdogMs = isWatched ? Number(usec) / 1000 : Number.NaN;
    return {
      notify(state) {
        const error = send.to(state);
        if (error !== undefined) fail(error);
      },
      watchdogMs: watchdogMs > 0 ? watchdogMs : undefined,
      close: send.close,
    };
  } catch (error) {
    fail(error instanceof Error ? error.message : String(error));
    return undefined;
  }
}

interface Socket {
  /** @returns why it was not sent. */
  readonly to: (text: string) => string | undefined;
  readonly close: () => void;
}

/** Node has no datagram sockets of this family: this calls the C library. */
async function openSocket(path: string): Promise<Socket> {
  const address = addressOf(path);
  const { default: koffi } = await import('koffi');
  const libc = koffi.load(null);
  const socket = libc.func('int socket(int, int, int)');
  const sendto = libc.func('long sendto(int, void *, size_t, int, void *, unsigned int)');
  const close = libc.func('int close(int)');
  const reason = (): string => {
    const errno = koffi.errno();
    const [name] = Object.entries(koffi.os.errno).find(([, value]) => value === errno) ?? [];
    return name ?? `error ${errno}`;
  };
  const fd = socket(AF_UNIX, SOCK_DGRAM_CLOEXEC, 0) as number;
  if (fd < 0) throw new Error(reason());
  return {
    to(text) {
      const bytes = Buffer.from(text);
      const { length } = address;
      const flags = MSG_DONTWAIT_NOSIGNAL;
      const sent = sendto(fd, bytes, bytes.length, flags, address, length) as number;
      return sent === bytes.length ? undefined : reason();
    },
    close: () => void close(fd),
  };
}

/** `struct sockaddr_un` of Linux; a name that begins with `@` is one in no file system. */
function addressOf(path: string): Buffer {
  const name = Buffer.from(path);
  if (process.platform !== 'linux' || !/^[/@]./.test(path) || name.length > LONGEST_PATH) {
    throw new Error('NOTIFY_SOCKET is of a kind that is not known here');
  }
  const family = Buffer.from(new Uint16Array([AF_UNIX]).buffer);
  if (path.startsWith('@')) name[0] = 0;
  const end = path.startsWith('@') ? [] : [Buffer.alloc(1)];
  return Buffer.concat([family, name, ...end]);
}
