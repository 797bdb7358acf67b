# frozen_string_literal: true

module Keys
  ROOT = "app"
  JOB = "#{ROOT}:job:%<id>d"
  FEED = "feed:%s".freeze

  def self.session(token)
    "#{ROOT}:session:#{token}"
  end
end
