export const KEYS = {
  user: (id: string) => `user:${id}`,
  feed(userId: string) {
    return `feed:${userId}`;
  },
  ranking: 'ranking:global',
} as const;

export enum Prefix {
  Token = 'token',
  Code = 'code',
}

export const HOUR = 60 * 60;
export const codeKey = (email: string) => `${Prefix.Code}:${email}`;
