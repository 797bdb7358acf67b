package shop;

public final class Constants {
    public static final String ROOT = "shop:";
    public static final String TOKEN = ROOT + "token:";
    public static final long TOKEN_SECONDS = 60 * 60 * 2;
}
