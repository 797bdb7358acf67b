package shop;

public enum RedisKeys {
    USER("user:%s"),
    CART("cart:%s:items");

    private final String template;

    RedisKeys(String template) {
        this.template = template;
    }

    public String of(Object id) {
        return String.format(template, id);
    }
}
